//! Every bound of the server, named with its unit and its reason.
