"""The 64-bit words of a prepared launch, which `arrays.launch` writes and `kernels.cpu.launches` reads.

First come `HEAD` words, then an address per array, then `RECORD` words per array, then the kernel's arguments, a word
each; for a GPU behind them as many words for the addresses of the arguments, and an array by value. Read by both sides,
so it imports no compiler.
"""

(
    RESULT,  # 0, or one of the reasons below
    LENGTH,  # of all words
    KERNEL,  # address of a kernel of the CPU that the calling thread runs by itself, or 0
    ARRAYS,  # how many
    FIRST,  # the word of the first argument
    COUNT,  # of arguments
    LAUNCH, DEVICE, CAPTURING, UPLOAD,  # addresses of functions of the driver, 0 for a kernel of the CPU
    ORDINAL,  # of the GPU that must be current
    FUNCTION, GRID_X, GRID_Y, GRID_Z, BLOCK_X, BLOCK_Y, BLOCK_Z, SHARED,  # of cuLaunchKernel
    BOXES,  # which array holds boxes from the host, or -1; the words up to `RULE` are of these alone
    STEP, ALONG,  # bytes from box to box, and from number to number
    DTYPE,  # its place in `crop.check.BOX_DTYPES`
    NUMBER,  # of boxes
    WIDTH, HEIGHT,  # of the frame
    RULE,  # a number of `crop.check.RULES`
    ROOM,  # address for the boxes as float32, or of what is copied to the GPU; 0: in these words, at the word `TAIL`
    TAIL,
    ROOM_TO,  # the argument that takes this address, or -1
    THERE, SIZE,  # address on the GPU to which that is copied, or 0, and bytes
    SCRATCH,
    STREAM,  # handle
    HEAD,
) = range(35)  # fmt: skip

BELOW, ABOVE, ARGUMENT, RECORD = range(4)  # bytes to the first byte and to the one behind the last; which argument

# Reasons for which nothing was launched; `DRIVER` and more are errors of the driver.
OTHER_GPU, CAPTURED, OVERLAP, WRONG_BOXES, NO_MEMORY, DRIVER = 1, 2, 3, 4, 5, 16
