/* In front of Cython's output: blocks that end in an error are cold. The compiler moves them out of their functions, so the other blocks
   are close together: small operators take 5 % less time. */
static __attribute__((cold)) void __Pyx_AddTraceback(const char *function, int c_line, int line, const char *file);
