package tracing

// Each is each.
var Each = each
