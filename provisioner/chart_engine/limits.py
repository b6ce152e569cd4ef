"""What rendering one chart may take. Helm's engine itself needs some 70 MB, and large charts about 100 MB more."""

MEMORY_BYTES = 384 * 2**20
CPU_SECONDS = 20
WALL_SECONDS = 60.0
MAX_OUTPUT_BYTES = 32 * 2**20
MAX_WORDS = 1000
# A process that used or held more is not used again: each chart is to have all that it may take.
MAX_KEPT_CHARTS = 32
MAX_KEPT_SECONDS = 5
MAX_KEPT_BYTES = 192 * 2**20
# After that the parent has forgotten it, or is gone without a word.
MAX_IDLE_SECONDS = 60.0
