/* Included before everything else in an adapter that is to be loaded with glibc 2.28 and the libstdc++ of GCC
 * 8: it is compiled with newer ones. `adapters.py` refuses an adapter that wants something newer; the remedy
 * goes here. */
#ifndef TRAPLINE_OLD_RUNTIME_H_
#define TRAPLINE_OLD_RUNTIME_H_

/* What glibc has moved since, and given a new version. */
#if defined(__x86_64__)
#define TRAPLINE_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__aarch64__)
#define TRAPLINE_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#else
#error "trapline: adapters: the versions of this machine's glibc are not known: add them here"
#endif

TRAPLINE_OLD(dlopen);
TRAPLINE_OLD(dlsym);
TRAPLINE_OLD(dlclose);
TRAPLINE_OLD(dladdr);
TRAPLINE_OLD(dlerror);
TRAPLINE_OLD(pthread_once);
TRAPLINE_OLD(pthread_mutex_timedlock);
#if defined(__x86_64__)
__asm__(".symver pthread_getname_np,pthread_getname_np@GLIBC_2.12");
#else
TRAPLINE_OLD(pthread_getname_np);
#endif

#define TRAPLINE_OWN __attribute__((visibility("hidden")))

/* Of glibc 2.32: whether the process has one thread. It may have more: reference counts stay atomic. */
extern "C" {
TRAPLINE_OWN char __libc_single_threaded = 0;
}

/* Of GCC 11: inline functions call these. The copy and the destructor of old do the same. */
extern "C" {
void trapline_old_copy(void* made, const void* from) __asm__("_ZNSt15__exception_ptr13exception_ptrC1ERKS0_");
void trapline_old_end(void* held) __asm__("_ZNSt15__exception_ptr13exception_ptrD1Ev");
TRAPLINE_OWN void trapline_addref(void* self) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
TRAPLINE_OWN void trapline_release(void* self) __asm__("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
TRAPLINE_OWN void trapline_array() __asm__("_ZSt28__throw_bad_array_new_lengthv");
void trapline_old_alloc() __asm__("_ZSt17__throw_bad_allocv");

void trapline_addref(void* self) {
  void* copy;
  trapline_old_copy(&copy, self);
}
void trapline_release(void* self) { trapline_old_end(self); }
void trapline_array() { trapline_old_alloc(); }
}

/* Of GCC 11, in C++20: `str() const &` of a string stream is what `str() const` was. */
#if defined(__x86_64__)
#define TRAPLINE_GO_TO "jmp "
#define TRAPLINE_FAR "@PLT"
#else
#define TRAPLINE_GO_TO "b "
#define TRAPLINE_FAR ""
#endif
__asm__(
    ".pushsection .text\n"
    ".globl _ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv\n"
    ".hidden _ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv\n"
    ".type _ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv, %function\n"
    "_ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv:\n" TRAPLINE_GO_TO
    "_ZNKSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv" TRAPLINE_FAR
    "\n"
    ".popsection\n");

#endif /* TRAPLINE_OLD_RUNTIME_H_ */
