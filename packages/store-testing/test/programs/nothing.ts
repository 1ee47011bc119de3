/** Ends without having done anything. */
process.exit(3)
