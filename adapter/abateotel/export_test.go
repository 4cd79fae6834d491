package abateotel

// Redacted is for the fuzz test.
var Redacted = redacted
