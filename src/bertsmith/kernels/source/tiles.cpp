#include "tiles.h"

#if TILES_BY_AMX
#include <sys/syscall.h>
#include <unistd.h>

bool tiles_are_allowed() {
    constexpr int REQUEST_PERMISSION = 0x1023, TILE_DATA = 18;
    static const bool allowed = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
    return allowed;
}
#endif

// Whether the kernels that multiply matrices themselves are there: on processors with AMX or AVX-512 for bf16.
extern "C" int multiplies() {
#if HAS_TILES
    return tiles_are_allowed();
#else
    return 0;
#endif
}
