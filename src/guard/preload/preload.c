/* libtrapline_preload.so: comes into a C++ program by LD_PRELOAD and loads the guard that was built for the
 * program's libtorch. It needs nothing but the C library, so that it does no harm to the other programs that
 * a launcher starts. A libtorch that is loaded later, by dlopen, is not seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct libtorch {
  char cpu[PATH_MAX];
  char c10[PATH_MAX];
};

static int note_library(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct libtorch* found = data;
  const char* name = strrchr(info->dlpi_name, '/');
  if (name == NULL) return 0;
  if (strncmp(name, "/libtorch_cpu.so", 16) == 0 && realpath(info->dlpi_name, found->cpu) == NULL)
    found->cpu[0] = '\0';
  if (strncmp(name, "/libc10.so", 10) == 0 && realpath(info->dlpi_name, found->c10) == NULL)
    found->c10[0] = '\0';
  return 0;
}

static long long size_of(const char* path) {
  struct stat state;
  return stat(path, &state) == 0 ? (long long)state.st_size : -1;
}

/* TRAPLINE_LIBTORCH_DIRS: folders with a colon in between. */
static int load_from(const char* folders, const char* name) {
  char path[PATH_MAX];
  while (*folders != '\0') {
    const size_t length = strcspn(folders, ":");
    if (length > 0 &&
        (size_t)snprintf(path, sizeof path, "%.*s/%s", (int)length, folders, name) < sizeof path &&
        size_of(path) > 0) {
      if (dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL) return 1;
      fprintf(stderr, "trapline: libtorch: %s: this process is not guarded: build it again\n", dlerror());
      return 1;
    }
    folders += length;
    if (*folders == ':') ++folders;
  }
  return 0;
}

__attribute__((constructor)) static void bring_in(void) {
  static struct libtorch found;
  const char* folders = getenv("TRAPLINE_LIBTORCH_DIRS");
  const char* off = getenv("TRAPLINE_OFF");
  char name[128];
  if (folders == NULL || (off != NULL && strcmp(off, "1") == 0)) return;
  dl_iterate_phdr(note_library, &found);
  if (found.cpu[0] == '\0' || found.c10[0] == '\0') return;
  /* Two builds of libtorch of the same sizes are the same build: libtorch.py of Python has it too. */
  snprintf(name, sizeof name, "trapline_libtorch-%llx-%llx.so", size_of(found.cpu), size_of(found.c10));
  if (load_from(folders, name)) return;
  const char* builder = getenv("TRAPLINE_LIBTORCH_BUILDER");
  fprintf(stderr,
          "trapline: libtorch: no guard for %s: this process is not guarded: build it once with: python3 %s "
          "--libtorch %s\n",
          found.cpu, builder != NULL ? builder : "_build_libtorch.py", found.cpu);
}
