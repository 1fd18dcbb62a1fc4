-- nothing
/* here */
