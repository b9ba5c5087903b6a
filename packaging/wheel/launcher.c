// `trapline` on PATH, as a wheel installs it: finds the package `trapline` of its own installation and
// becomes the program in it. No Python is started for that. The package lies where the installer put it, seen
// from this file:
//
//   PREFIX/bin/trapline   PREFIX/lib*/py*/site-packages/trapline    a venv, --user, --prefix, conda
//   PREFIX/bin/trapline   PREFIX/lib*/py*/dist-packages/trapline    Debian's and Ubuntu's own Python
//   TARGET/bin/trapline   TARGET/trapline                           pip install --target
//
// A prefix may serve several Pythons, each with its Trapline: the package's version (trapline/_bin/version)
// has to be this file's.
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static char g_other[PATH_MAX];  // a package of another version

// Whether `package` is this file's: then `program` is the program in it.
static int fits(const char* package, char* program, size_t size) {
  char text[64] = "";
  if ((size_t)snprintf(program, size, "%s/_bin/version", package) >= size) return 0;
  FILE* file = fopen(program, "re");
  if (file == NULL) return 0;
  const size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  text[strcspn(text, "\n")] = '\0';
  if (strcmp(text, TRAPLINE_VERSION) != 0) {
    snprintf(g_other, sizeof g_other, "%s", package);
    return 0;
  }
  return (size_t)snprintf(program, size, "%s/_bin/trapline", package) < size;
}

// `prefix` as a pattern that only it matches.
static int quote(const char* prefix, char* out, size_t size) {
  size_t used = 0;
  for (; *prefix != '\0'; ++prefix) {
    if (used + 3 > size) return 0;
    if (strchr("*?[\\", *prefix) != NULL) out[used++] = '\\';
    out[used++] = *prefix;
  }
  out[used] = '\0';
  return 1;
}

static int find(const char* prefix, char* program, size_t size) {
  static const char* const places[] = {"%s/trapline", "%s/lib*/py*/site-packages/trapline",
                                       "%s/lib*/py*/dist-packages/trapline"};
  char quoted[PATH_MAX];
  if (!quote(prefix, quoted, sizeof quoted)) return 0;
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    char pattern[PATH_MAX];
    glob_t found;
    if ((size_t)snprintf(pattern, sizeof pattern, places[i], quoted) >= sizeof pattern) continue;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) continue;
    int done = 0;
    for (size_t j = 0; j < found.gl_pathc && !done; ++j) done = fits(found.gl_pathv[j], program, size);
    globfree(&found);
    if (done) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  char self[PATH_MAX], program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length > 0) {
    self[length] = '\0';
  } else {  // no /proc: the path that the kernel was given
    const char* given = (const char*)getauxval(AT_EXECFN);
    if (given == NULL || realpath(given, self) == NULL) {
      fputs(
          "trapline: cannot find its own place: /proc is not mounted here: mount it, or start trapline by "
          "its full path\n",
          stderr);
      return 2;
    }
  }
  for (int up = 0; up < 2; ++up) {  // .../bin/trapline
    char* slash = strrchr(self, '/');
    if (slash == NULL) break;
    *slash = '\0';
  }
  if (!find(self, program, sizeof program)) {
    if (*g_other != '\0') {
      fprintf(stderr,
              "trapline: the package in %s is not of version " TRAPLINE_VERSION ": install trapline again\n",
              g_other);
    } else {
      fprintf(
          stderr,
          "trapline: cannot find its package: none in %s/lib/python*/site-packages: install trapline again\n",
          self);
    }
    return 2;
  }
  if (argc > 0) argv[0] = program;
  execv(program, argv);
  fprintf(stderr, "trapline: cannot start %s: %s: install trapline again\n", program, strerror(errno));
  return 2;
}
