"""What rendering one chart may take. Helm's engine itself needs some 70 MB, and large charts about 100 MB more."""

MEMORY_BYTES = 384 * 2**20
CPU_SECONDS = 20
WALL_SECONDS = 60.0
MAX_OUTPUT_BYTES = 32 * 2**20
# Charts within charts, as archives or as folders.
MAX_DEPTH = 16
MAX_WORDS = 1000
# Lines of a .helmignore that say something: each is held against each file. Charts have some twenty.
MAX_IGNORE_PATTERNS = 200
MAX_IGNORE_PATTERN = 256
