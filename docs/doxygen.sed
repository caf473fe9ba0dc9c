# Plain comments become ones that doxygen reads: those before a declaration, and those behind one.
# The first is about the file.
1s|^/\* |/** @file\n * |
1s|^// |/// @file\n/// |
/^ *\/\* ----/d
/^ *\/\/ ----/d
s|^\( *\)/\* |\1/** |
s|\([;,{]\) */\* |\1 /**< |
s|^\( *\)// |\1/// |
s|\([;,{]\) *// |\1 ///< |
