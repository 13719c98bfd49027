"""How each clause is checked: one package per contract, one module per topic."""
