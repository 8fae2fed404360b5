/* The structures of DLPack 1.3, as https://dmlc.github.io/dlpack/latest/c_api.html defines them; memory others may hold.
 *
 * A managed tensor is freed by its deleter, whichever thread calls it, with or without the GIL.
 */
#ifndef CG_DLPACK_STRUCTS_H
#define CG_DLPACK_STRUCTS_H
#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 3 };
enum { DLPACK_CPU = 1 };                                            /* DLDeviceType */
enum { DLPACK_READ_ONLY = 1, DLPACK_IS_COPIED = 2 };                /* flags of a versioned tensor */

typedef struct { uint32_t major, minor; } DLPackVersion;
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;           /* in elements; NULL: row-major (until 1.2) */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;      /* with another major number, nothing below the deleter may be read */
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif
