// Browsers refuse workers to pages that are opened from a folder (file:). There the search runs in a hidden frame,
// which takes and gives the messages that a worker would.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = source => new Promise((resolve, reject) => {
        const element = inside.document.createElement("script");
        Object.assign(element, { src: source, onload: resolve, onerror: reject });
        inside.document.body.appendChild(element);
      });
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => script(source)), Promise.resolve());
      this.frame = frame;
      this.ready = script(new URL(url, location.href).href);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
