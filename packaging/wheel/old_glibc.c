/* What GCC 12's static libstdc++ and libgcc_eh want of a glibc newer than 2.28, for a link against an older
 * one. All of it is hidden: nothing leaves the program or library that it is linked into. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

char __libc_single_threaded = 0; /* "there may be threads": atomics are used, as they were before 2.32 */

/* glibc 2.35. libgcc that was built with that one has no other way to its unwind tables: without a true
 * answer every C++ exception ends in abort(). */
struct found {
  unsigned long long flags;
  void *map_start, *map_end, *link_map, *eh_frame;
};
struct search {
  uintptr_t address;
  struct found* out;
};

static int holds(struct dl_phdr_info* info, size_t size, void* data) {
  struct search* search = data;
  const ElfW(Phdr)* table = NULL;
  int inside = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) table = part;
    if (part->p_type != PT_LOAD || search->address < start || search->address - start >= part->p_memsz)
      continue;
    inside = 1;
    search->out->map_start = (void*)start;
    search->out->map_end = (void*)(start + part->p_memsz);
  }
  if (!inside || table == NULL) return 0;
  search->out->eh_frame = (void*)(info->dlpi_addr + table->p_vaddr);
  return 1;
}

/* Under another name, since headers may declare the real one. */
__asm__(".globl _dl_find_object\n.hidden _dl_find_object\n.set _dl_find_object, trapline_find_object");
__attribute__((used)) int trapline_find_object(void* address, struct found* result) {
  struct search search = {(uintptr_t)address, result};
  result->flags = 0;
  result->link_map = NULL;
  return dl_iterate_phdr(holds, &search) == 1 ? 0 : -1;
}

/* glibc 2.30. Should the wait's clock be set meanwhile, the wait ends early or late, as it did before 2.30.
 */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  struct timespec now, real, at;
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &real);
  at.tv_sec = real.tv_sec + (until->tv_sec - now.tv_sec);
  at.tv_nsec = real.tv_nsec + (until->tv_nsec - now.tv_nsec);
  if (at.tv_nsec >= 1000000000L) at.tv_sec++, at.tv_nsec -= 1000000000L;
  if (at.tv_nsec < 0) at.tv_sec--, at.tv_nsec += 1000000000L;
  return pthread_cond_timedwait(condition, mutex, &at);
}

/* glibc 2.36; std::random_device. */
uint32_t arc4random(void) {
  uint32_t number;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
    if (errno != EINTR) abort();
  }
  return number;
}

/* glibc 2.34; Linux 5.9. Before that, one descriptor after another. */
int close_range(unsigned int first, unsigned int last, int flags) {
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
  if (syscall(SYS_close_range, first, last, flags) == 0) return 0;
  if (errno != ENOSYS || flags != 0) return -1;
  const long open = sysconf(_SC_OPEN_MAX);
  const unsigned int end = open > 0 ? (unsigned int)open - 1 : 65535;
  for (unsigned int one = first; one <= last && one <= end; ++one) close((int)one);
  return 0;
}

/* glibc 2.32. */
const char* sigabbrev_np(int number) {
  static const struct {
    int number;
    const char* name;
  } names[] = {{SIGHUP, "HUP"},       {SIGINT, "INT"},   {SIGQUIT, "QUIT"},     {SIGILL, "ILL"},
               {SIGTRAP, "TRAP"},     {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},       {SIGFPE, "FPE"},
               {SIGKILL, "KILL"},     {SIGUSR1, "USR1"}, {SIGSEGV, "SEGV"},     {SIGUSR2, "USR2"},
               {SIGPIPE, "PIPE"},     {SIGALRM, "ALRM"}, {SIGTERM, "TERM"},     {SIGCHLD, "CHLD"},
               {SIGSTKFLT, "STKFLT"}, {SIGCONT, "CONT"}, {SIGSTOP, "STOP"},     {SIGTSTP, "TSTP"},
               {SIGTTIN, "TTIN"},     {SIGTTOU, "TTOU"}, {SIGURG, "URG"},       {SIGXCPU, "XCPU"},
               {SIGXFSZ, "XFSZ"},     {SIGPROF, "PROF"}, {SIGVTALRM, "VTALRM"}, {SIGPOLL, "POLL"},
               {SIGWINCH, "WINCH"},   {SIGPWR, "PWR"},   {SIGSYS, "SYS"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (names[i].number == number) return names[i].name;
  }
  return NULL;
}

#pragma GCC visibility pop
