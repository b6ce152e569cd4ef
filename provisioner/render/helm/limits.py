"""What rendering one chart may take. Helm's engine itself needs some 70 MB, and large charts about 100 MB more."""

MEMORY_BYTES = 384 * 2**20
CPU_SECONDS = 20
WALL_SECONDS = 60.0
MAX_OUTPUT_BYTES = 32 * 2**20
# Charts within charts, as archives or as folders.
MAX_DEPTH = 16
MAX_WORDS = 1000
# Lines of a .helmignore that say something: each counts for each file. Charts have some twenty.
MAX_IGNORE_BYTES = 256 * 1024
MAX_IGNORE_PATTERNS = 200
MAX_IGNORE_PATTERN = 256
# Characters of the folders of a chart, each once.
MAX_IGNORE_PATHS = 8_000_000
