"""How exact noise is made from random bits; `untold.private.noise` is the only one that may ask for it."""
