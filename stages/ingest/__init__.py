"""Raw bytes to one typed data set per domain; one package per domain, one module per family of file formats."""
