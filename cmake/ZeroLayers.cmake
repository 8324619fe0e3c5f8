# The floors of src/, lowest first. Layers of one floor, joined by commas, are siblings.
# CheckLayers.cmake checks that includes and links respect this order.
set(zero_floors base io,math,lists comm,data nn sharding plan,state engine,simulation checkpoint train,verify
  facts report trace,course,paper pages cli)

# Only the program has these layers. libzero consists of all others.
set(zero_program_layers simulation verify facts report trace course paper pages cli)
