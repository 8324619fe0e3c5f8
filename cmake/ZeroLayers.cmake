# The floors of src/, lowest first; layers of one floor, joined by commas, are siblings.
# CheckLayers.cmake holds includes and links against them.
set(zero_floors base io,math,comm data,nn sharding engine checkpoint train report cli)

# The program alone has these. libzero is the sum of all others.
set(zero_program_layers report cli)
