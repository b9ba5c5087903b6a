#include "log/read/scan_literals.hpp"

#include <cstring>

namespace trapline::scan {
namespace {

constexpr HitKind kFlood = HitKind::kFlood;
constexpr HitKind kStrong = HitKind::kStrong;
constexpr HitKind kWeak = HitKind::kWeak;

// Chosen so that logs of healthy programs hardly have any of them, and that no wording of the catalogue lacks
// them all (tests/log/reader_scan holds both against samples).
constexpr Literal kLiterals[] = {
    {"ssert", kFlood},         // Assertion, assert, cudaErrorAssert, device-side assert
    {"hread: [", kFlood},      // block: [0,0,0], thread: [1,0,0] of lines whose "Assertion" was lost
    {"\u65ad\u8a00", kFlood},  // "assertion" in a machine-translated log
    {"rror", kStrong},
    {"raceback", kStrong},
    {"\u2771 ", kStrong},  // the mark of rich's boxes
    {"remainder of r", kStrong},
    {"timeout at", kStrong},
    {"memory: -", kStrong},
    {"ile \"", kStrong},  // a Python frame
    {"frame #", kStrong},
    {"backtr", kStrong},
    {"stack trace", kStrong},
    {"xception", kStrong},
    {"terminat", kStrong},
    {"illegal", kStrong},
    {"misalign", kStrong},
    {"invalid", kStrong},
    {"unspecified", kStrong},
    {"mismatch", kStrong},
    {"checksum does", kStrong},
    {"out of ", kStrong},  // memory, bounds, range
    {"out_of_", kStrong},
    {"outofm", kStrong},
    {"oom-k", kStrong},
    {"kill", kStrong},
    {"abort", kStrong},
    {"fail", kStrong},
    {" fault", kStrong},
    {"segfault", kStrong},
    {"segmentation", kStrong},
    {"bus error", kStrong},
    {"core dump", kStrong},
    {"fatal", kStrong},
    {"panic", kStrong},
    {"crash", kStrong},
    {"signal", kStrong},
    {"exit code", kStrong},
    {"exitcode", kStrong},
    {"timed out", kStrong},
    {"watchdog", kStrong},
    {"unhandled", kStrong},
    {"nccl warn", kStrong},
    {"_status_", kStrong},  // CUBLAS_STATUS_NOT_INITIALIZED
    {"kernel image", kStrong},
    {"arrived on time", kStrong},
    {"invoke ptxas", kStrong},
    {"available devices are", kStrong},
    {"same context", kStrong},
    {"packages are inst", kStrong},
    {"not match", kStrong},
    {"cpu-only", kStrong},
    {"must match", kStrong},
    {"corrupt", kStrong},
    {"any nv files", kStrong},
    {"violations tot", kStrong},
    {"moved too far", kStrong},
    {"gpu tasks", kStrong},
    {"was required", kStrong},
    {"box detected", kStrong},
    {"not allowed", kStrong},
    {"problem with the", kStrong},
    {"too old", kStrong},
    {"compiler was", kStrong},
    {"too many res", kStrong},
    {"than the max", kStrong},
    {"exceeds `max", kStrong},
    {"mpossible", kStrong},
    {"va display", kStrong},
    {"surfaces left", kStrong},
    {"bitsandbytes cuda", kStrong},
    {"*guarantees*", kStrong},
    {"critical", kStrong},
    {"old cuda driver", kStrong},
    {"newer version of ollama", kStrong},
    {"must be <=", kStrong},
    {"cannot find mps", kStrong},
    {"compiled with cuda", kStrong},
    {"without cuda", kStrong},
    {"toolkit found", kStrong},
    {"skip loading", kStrong},
    {"compute capability:", kStrong},
    {"by another process", kStrong},
    {"change power", kStrong},
    {"gres/gpu count", kStrong},
    {"a100+", kStrong},
    {"available memory of", kStrong},
    {"amdgpu is not", kStrong},
    {"cannot open", kStrong},
    {"memory type (", kStrong},
    {"requires a gpu", kStrong},
    {"but run-time", kStrong},
    {"but compile-time", kStrong},
    {"no supported ops", kStrong},
    {"on a gpu because", kStrong},
    {"not correspond", kStrong},
    {"rebuild this file", kStrong},
    {"outdated or", kStrong},
    {"exceeds max", kStrong},
    {"same device", kStrong},
    {"exceeds the current", kStrong},
    {"different shapes", kStrong},
    {"unknown encoder", kStrong},
    {"unknown decoder", kStrong},
    {"cuda flavor", kStrong},
    {"seem not to", kStrong},
    {"insufficient", kStrong},
    {"uncorrect", kStrong},
    {"nvrm: ", kStrong},
    {"xid (", kStrong},
    {"off the bus", kStrong},
    {"\u9519\u8bef", kStrong},  // "error"
    {"\u5931\u8d25", kStrong},  // "failed"
    {" nan", kWeak},
    {"=nan", kWeak},
    {":nan", kWeak},
    {"loss is inf", kWeak},
    {"not supported on", kStrong},
    {"not compatible", kStrong},
    {"incompatib", kStrong},
    {"unable to ", kStrong},
    {"cuda major ver", kStrong},
    {"gpu is lost", kStrong},
    {"closed by peer", kStrong},
    {"process down", kStrong},
    {"overflow!", kWeak},
    {"reducing loss sc", kWeak},
    {"deepep timeout", kStrong},
    {"unhealthy", kStrong},
    {"could not alloc", kStrong},
    {"libdevice", kStrong},
    {"was compiled with", kStrong},
    {"ptx compil", kStrong},
    {"not enough", kStrong},
    {"times out", kStrong},
    {"requested, but", kStrong},
    {"gpu reset", kStrong},
    {"gpu hang", kStrong},
    {"mode1 reset", kStrong},
    {"mode2 reset", kStrong},
    {"baco reset", kStrong},
    {"undefined ref", kStrong},
    {"timedout", kStrong},
    {"nvlddmkm", kStrong},
    {"no devices w", kStrong},
    {"sigabrt", kStrong},
    {"dumped", kStrong},
    {"exit status", kStrong},
    {"worker timeout", kStrong},
    {"to have died", kStrong},
    {"can't alloc", kStrong},
    {"with capability", kStrong},
    {"has capability", kStrong},  // xformers' reasons
    {"(supported:", kStrong},
    {"cannot find -l", kStrong},
    {"cannot load", kStrong},
    {"required nv", kStrong},
    {"could not locate", kStrong},
    {"library path", kStrong},
    {"cannot start", kStrong},
    {"device lost", kStrong},
    {"removing dev", kStrong},
    {"suspended", kStrong},
    {"halted", kStrong},  // R's "Execution halted"
    {"no space left", kStrong},
    {"not found", kStrong},  // a shell's command
    {"not recognized", kStrong},
    {"overflowed its", kStrong},
    {"stopped working", kStrong},
    {"faulting app", kStrong},
    {"went wrong", kStrong},
    {"blocked for more", kStrong},
    {"unresponsive", kStrong},
    {"soft lockup", kStrong},
    {"vram is lost", kStrong},
    {"887a00", kStrong},
    {"must be a", kStrong},
    {"conflicting dev", kStrong},
    {"allocation of", kStrong},
    {"cannot alloc", kStrong},
    {"marked degraded", kStrong},
    {"bad state and", kStrong},
    {"no suitable", kStrong},
    {"job step", kStrong},
    {"wtermsig", kStrong},  // slurmctld
    {"wexitstatus", kStrong},
    {"cannot assign", kStrong},
    {"exceeded", kStrong},
    {"unsatisfied", kStrong},
    {"bad_alloc", kStrong},
    {"no solution", kStrong},  // uv's
    {"statuscode.", kStrong},  // gRPC's
    {"problematic fr", kStrong},
    {"context_lost", kStrong},
    {"what():", kStrong},
    {"[critical]", kStrong},
    {"ed function or v", kStrong},  // MATLAB: Unrecognized, Undefined
    {"callstack (", kStrong},
    {"evicted", kStrong},
    {"pullbackoff", kStrong},
    {"unbound var", kStrong},
    {"not override", kStrong},
    {"bugcheck", kStrong},
    {"missing option", kStrong},
    {"no such file or", kStrong},
    {")[0x", kStrong},  // a native frame
    {" +0x", kStrong},  // Go's
    {" 0x0000", kStrong},
    {"(0x7f", kStrong},
    {"----> ", kStrong},
    {"@     0x", kStrong},
    {"** (", kStrong},
    {"\u5df2\u6740\u6b7b", kStrong},  // a shell's words in Chinese
    {"\u5df2\u780d\u6389", kStrong},
    {"\u5df2\u653e\u5f03", kStrong},
    {"\u6838\u5fc3\u5df2", kStrong},
    {"not compiled", kStrong},
    {"not detected", kStrong},
    {"receiver tim", kStrong},
    {"forwarder tim", kStrong},
    {"gpu xid", kStrong},
    {"xid error", kStrong},
    {"missing key", kStrong},
    {"unexpected key", kStrong},
    {"host frame:", kStrong},
    {"device frame:", kStrong},
    {"running against", kStrong},
    {"launch blocks", kStrong},
    {"has a problem w", kStrong},
    {"bailing out", kStrong},
    {"to exist", kStrong},
    {"non-finite val", kStrong},
    {"jobstate=", kStrong},
    {"exit_status", kStrong},
    {"sigsegv", kStrong},
    {"sigbus", kStrong},
    {"inconsistency", kStrong},
    {"systemexit", kStrong},
    {"marked dead", kStrong},
    {"queue.empty", kStrong},
    {"queue.full", kStrong},
    {"timeoutexp", kStrong},
    {"stacktrace:", kStrong},
    {"    at obj", kStrong},  // JavaScript's, Java's
    {"(native", kStrong},
    {".java:", kStrong},
    {"node:", kStrong},
    {"stop 1", kWeak},  // Fortran's
    {"stop 2", kWeak},
    {"protection_fault", kStrong},
    {"previous command", kStrong},
    {"preemption time", kStrong},
    {"device wedged", kStrong},
    {"gpu lockup", kStrong},
    {"stalled for", kStrong},
    {"stopped heart", kStrong},
    {"library not lo", kStrong},
    {"restarting kern", kStrong},  // Jupyter's
    {"gpu node, did", kStrong},    // NVIDIA's device plugin
    {"no vulkan dev", kStrong},
    {"no capable dev", kStrong},
    {"ule is not load", kStrong},  // ROCm's module
    {"err` value", kStrong},
    {"curand", kWeak},
    // Rows of the catalogue that are no failure but speak for a cause.
    {"wrong annot", kWeak},
    {"gpu_mem", kWeak},
    {"box_loss", kWeak},
    {"category ids", kWeak},
    {"unpacking data", kWeak},
    {"vocab_size", kWeak},
    {"specified maximum", kWeak},
    {"open-end gen", kWeak},
    {"friendly reminder", kWeak},
    {"out.shape", kWeak},
    {"embedding_lookup", kWeak},
    {"word embeddings are", kWeak},
    {"launch_blocking", kWeak},
    {"delegate init", kStrong},
    {"cudaerr:", kStrong},
    {"no opencl", kStrong},
    {"requiresext", kStrong},
    {"hook directly", kStrong},
    {"not unload", kStrong},
    {"pending enable", kStrong},
    {"find libnvidia", kStrong},
    {"unavailable;", kStrong},
    {"no supported nvidia", kStrong},
    {"considers the driver", kStrong},
    {"gpus compatible", kStrong},
    {"the gpu-ids", kStrong},
    {"set build_", kStrong},
    {"to be oom", kStrong},
    {"reduce memory cons", kStrong},
    {"no active ib", kStrong},
    {"install pytorch with", kStrong},
    {"not deterministic", kStrong},
    {"exceeds the max", kStrong},
    {"must not exceed", kStrong},
    {"clash with l1", kStrong},
    {"beyond max l1", kStrong},
    {" ( -4 )", kStrong},
    {"not functional", kStrong},
    {"match with driver", kStrong},
    {"reached memory lim", kStrong},
    {"contributing orient", kStrong},
    {"please increase n", kStrong},
    {"for a compatible gpu", kStrong},
    {"kernel only supp", kStrong},
    {"deviceguardimpl", kStrong},
    {"of cuda capab", kStrong},
    {"not has any bin", kStrong},
    {"computing toolbox", kStrong},
    {"procedure entry", kStrong},
    {"unrecognized hwaccel", kStrong},
    {"not divisible by", kStrong},
    {"not validate on cpu", kStrong},
    {"execution requested", kStrong},
    {"not enough memory", kStrong},
    {"hsa_init", kStrong},
};

static_assert(std::size(kLiterals) <= 512, "eight buckets hold 64 each");

// The bytes of an ordinary log, as weights: the tables are laid out so that ordinary text passes few windows.
constexpr std::string_view kOrdinary =
    "2024-05-11 21:05:25,123 - INFO - train.py:120 - epoch 12 step 000482 loss 2.1439 lr 0.000394 grad_norm "
    "1.27 "
    "accuracy 0.7312 samples/s 1534.2 time 0.412 data 0.003 memory 15322 eta 1:22:10 rank 3\n"
    "Epoch 3:  45%|####5     | 45/100 [00:12<00:15,  3.61it/s, loss=0.423, v_num=12]\n"
    "[step    728] loss 1.6835 lr 0.000394 tokens/s 48211 validation metrics bleu 27.3 perplexity 14.2\n"
    "INFO:     127.0.0.1:52144 - \"POST /v1/completions HTTP/1.1\" 200 OK  Loading checkpoint shards done in "
    "4.2s, "
    "saving model to outputs/run/checkpoint-1500/pytorch_model.bin and config.json, total params 7.24 "
    "billion\n";

// How often a byte's low and high four bits occur in it.
struct Weights {
  std::array<double, 16> low{};
  std::array<double, 16> high{};
  Weights() {
    low.fill(1.0 / 32);  // nothing is impossible
    high.fill(1.0 / 32);
    for (const char c : kOrdinary) {
      low[static_cast<unsigned char>(c) & 15] += 0.5 / static_cast<double>(kOrdinary.size());
      high[static_cast<unsigned char>(c) >> 4] += 0.5 / static_cast<double>(kOrdinary.size());
    }
  }
};

// Whether ordinary text has the four bytes with which a window starts: then each of them is looked at.
bool is_ordinary(std::string_view window) {
  for (std::size_t i = 0; i + 4 <= kOrdinary.size(); ++i) {
    if (folded(kOrdinary.data() + i) == folded(window.data())) return true;
  }
  return false;
}

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// About how much ordinary text passes a bucket.
double passing(const Weights& weights, const Tables& tables, unsigned bucket) {
  double product = 1;
  for (std::size_t k = 0; k < kWindow; ++k) {
    double low = 0;
    double high = 0;
    for (unsigned nibble = 0; nibble < 16; ++nibble) {
      if ((tables.low[k][nibble] >> bucket & 1) != 0) low += weights.low[nibble];
      if ((tables.high[k][nibble] >> bucket & 1) != 0) high += weights.high[nibble];
    }
    product *= low * high;
  }
  return product;
}

void put(Tables& tables, unsigned bucket, std::string_view window) {
  const auto bit = static_cast<std::uint8_t>(1U << bucket);
  for (std::size_t k = 0; k < kWindow; ++k) {
    if (k >= window.size()) {  // shorter than the window: anything goes
      for (std::uint8_t& entry : tables.low[k]) entry |= bit;
      for (std::uint8_t& entry : tables.high[k]) entry |= bit;
      continue;
    }
    const auto byte = static_cast<unsigned char>(window[k]);
    tables.low[k][byte & 15] |= bit;
    tables.high[k][byte >> 4] |= bit;
    if (is_letter(window[k])) tables.high[k][(byte - 32) >> 4] |= bit;  // the low bits are the same
  }
}

}  // namespace

std::span<const Literal> literals() { return kLiterals; }

const Tables& tables() {
  static const Tables kTables = [] {
    Tables tables{};
    const Weights weights;
    for (std::size_t row = 0; row < std::size(kLiterals); ++row) {
      const std::string_view text = kLiterals[row].text;
      unsigned best_bucket = 0;
      std::size_t best_offset = 0;
      double best = 2;
      std::array<double, 8> now{};
      for (unsigned bucket = 0; bucket < 8; ++bucket) now[bucket] = passing(weights, tables, bucket);
      for (std::size_t offset = 0; offset == 0 || offset + kWindow <= text.size(); ++offset) {
        const double looks = is_ordinary(text.substr(offset, 4)) ? 1 : 0;
        for (unsigned bucket = 0; bucket < 8; ++bucket) {
          if (tables.sizes[bucket] == tables.buckets[bucket].size()) continue;
          Tables tried;  // the nibbles only: the rest is large
          tried.low = tables.low;
          tried.high = tables.high;
          put(tried, bucket, text.substr(offset, kWindow));
          const double more = passing(weights, tried, bucket) - now[bucket] + looks;
          if (more < best) best = more, best_bucket = bucket, best_offset = offset;
        }
      }
      put(tables, best_bucket, text.substr(best_offset, kWindow));
      const char* window = text.data() + best_offset;
      tables.buckets[best_bucket][tables.sizes[best_bucket]++] = {
          folded(window), static_cast<std::uint16_t>(row), static_cast<std::uint8_t>(best_offset)};
      const unsigned hash = gram(window);
      tables.grams[hash / 64] |= std::uint64_t{1} << (hash % 64);
    }
    return tables;
  }();
  return kTables;
}

bool matches(std::string_view block, std::size_t position, std::string_view literal) {
  if (block.size() - position < literal.size()) return false;
  for (std::size_t k = 0; k < literal.size(); ++k) {
    if (lower(block[position + k]) != literal[k]) return false;
  }
  return true;
}

int verify(const Tables& tables, std::string_view block, std::size_t position, unsigned buckets,
           std::size_t& start) {
  if (block.size() - position < 4) return -1;
  if (!may_start(tables, block.data() + position)) return -1;
  const std::uint32_t first = folded(block.data() + position);
  int found = -1;
  for (; buckets != 0; buckets &= buckets - 1) {
    const auto bucket = static_cast<unsigned>(__builtin_ctz(buckets));
    for (unsigned k = 0; k < tables.sizes[bucket]; ++k) {
      const Entry entry = tables.buckets[bucket][k];
      if (entry.start != first) continue;
      const Literal& literal = kLiterals[entry.literal];
      if (entry.offset > position || !matches(block, position - entry.offset, literal.text)) continue;
      if (found >= 0 && kLiterals[found].kind <= literal.kind) continue;  // the weightier kind wins
      found = entry.literal;
      start = position - entry.offset;
    }
  }
  return found;
}

std::size_t after_hit(std::string_view block, std::size_t start, HitKind kind) {
  if (kind == HitKind::kWeak) return start + 1;
  const std::size_t limit = start + kHitStride < block.size() ? start + kHitStride : block.size();
  const void* end = std::memchr(block.data() + start, '\n', limit - start);
  return end == nullptr ? limit : static_cast<std::size_t>(static_cast<const char*>(end) - block.data());
}

}  // namespace trapline::scan
