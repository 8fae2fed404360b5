/* The modes of a thread: there is one of each, since all modules are linked into one library. */
#ifndef CG_MODES_H
#define CG_MODES_H
extern __thread int cg_grad_mode;           /* 1: operations are recorded */
extern __thread int cg_inference_mode;      /* 1: results are inference tensors; 2: suspended */
extern __thread int cg_enabled_in_inference;    /* 1: gradients are enabled in inference mode, where nothing is recorded */
extern __thread int cg_overrides_off;       /* 1: classes of tensors are not asked; 2: nor modes of functions */
extern __thread int cg_function_modes;      /* that are entered */
#endif
