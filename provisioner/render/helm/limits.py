"""How much of a chart is read. What rendering it may take is in provisioner.chart_engine.limits."""

# Charts within charts, as archives or as folders.
MAX_DEPTH = 16
# Of what those hold as archives. What renders them keeps several copies of each file, in the memory that it has.
MAX_CHART_BYTES = 64 * 2**20
# Lines of a .helmignore that say something: each counts for each file. Charts have some twenty.
MAX_IGNORE_BYTES = 256 * 1024
MAX_IGNORE_PATTERNS = 200
MAX_IGNORE_PATTERN = 256
# Characters of the folders of a chart, each once.
MAX_IGNORE_PATHS = 8_000_000
