"""What README and documentation show that follows from code and references: numbers, pictures, pages."""
