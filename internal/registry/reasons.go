package registry

import "github.com/abate-go/abate/core"

// Reason is why a guard's policy ended a call.
type Reason struct {
	Err   error
	Label string // in metrics and traces
	Words string // on the admin page
}

// Reasons are all that a guard has. ErrAttemptsExhausted, which is among them, is no refusal: everything that the
// policy allows has been tried.
var Reasons = [...]Reason{
	{core.ErrCircuitOpen, "circuit_open", "circuit open"},
	{core.ErrBudgetExhausted, "budget_exhausted", "retry budget empty"},
	{core.ErrSilent, "retry_held_back", "retry held back"},
	{core.ErrAttemptsExhausted, "attempts_exhausted", "attempts exhausted"},
	{core.ErrTreeExhausted, "tree_exhausted", "call tree has no retries left"},
	{core.ErrBulkheadFull, "bulkhead_full", "bulkhead full"},
	{core.ErrRateLimited, "rate_limited", "rate limited"},
	{core.ErrThrottled, "throttled", "throttled"},
	{core.ErrDeadline, "deadline", "deadline"},
	{core.ErrOverloaded, "overloaded", "retry-after too long"},
}
