"""The paper's tables: one recipe per file, its printed numbers in the JSON file of the same name."""
