"""Study `sequences`: ragged sequences against padding."""
