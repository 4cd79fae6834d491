package scenario

import "github.com/abate-go/abate/sim/distribution"

// Session is what users of a fleet have who hold a connection each: chat, games, notifications, watches. All have one
// when a run begins, spread evenly over the replicas that there are. A replica that restarts, or refuses connections,
// cuts those that it holds. Of such a fleet goodput is the share of users that hold a session, over time, and so are
// collapse and recovery about that; its requests are openings.
type Session struct {
	// Returns is how long a user waits who has no session any more, or could not open one, until it asks for one: at
	// random, or all after the same time. How often it tries again then, and when, is the policy's.
	Returns distribution.Distribution `yaml:"returns" example:"uniform 0s..10s"`
	// Lasts is how long a session lasts that nobody cuts. Default: for ever.
	Lasts distribution.Distribution `yaml:"lasts" example:"exponential 2h"`
}

// HoldsSessions reports whether the users of a fleet hold a session each.
func (f *Fleet) HoldsSessions() bool { return !f.Session.Returns.IsZero() }

// pause is how long a user waits between two requests, at least.
func (f *Fleet) pause() distribution.Distribution {
	if f.HoldsSessions() {
		return f.Session.Returns
	}
	return f.Think
}

// session reports what is wrong with a fleet whose users hold sessions.
func (c *checker) session(f *Fleet, path string, has func(string) bool) {
	s := &f.Session
	c.obey(path, []rule{
		{has("session") && !has("users"), "session", "has no effect without users", "for example users: 10000", nil},
		{has("session") && has("think"), "think", "has no effect beside session", "keep one of the two", nil},
		{has("session") && !has("session.returns"), "session", "does not say when users come back",
			"for example session: {returns: uniform 0s..10s}", nil},
		{has("session.returns") && s.Returns.Mean() < leastThink, "session.returns",
			"a mean of " + short(s.Returns.Mean()) + " makes users ask without end at one moment",
			"allowed: a mean of at least 1ms; for example uniform 0s..10s", nil},
		{has("session.lasts") && s.Lasts.Mean() < leastThink, "session.lasts",
			"a mean of " + short(s.Lasts.Mean()) + " is no session", "allowed: a mean of at least 1ms", nil},
		{has("session") && has("method"), "method", "has no effect on users who hold sessions", remove, nil},
		{has("session") && has("topic"), "topic", "users who hold sessions do not consume", "keep one of the two", nil},
		{has("session") && len(f.Calls) > 1, "calls", "a session is opened by one call", "keep the one that opens it", nil},
	})
	if !has("session") || len(f.Calls) != 1 {
		return
	}
	call := &f.Calls[0]
	c.obey(path, []rule{
		{call.Pool > 0, "calls[0].pool", "has no effect: a session is a connection", remove, nil},
		{call.Times > 1, "calls[0].times", "a user opens one session at a time", remove, nil},
		{call.Share > 0 && call.Share < 1, "calls[0].share", "every user opens a session", "lower users", nil},
		{call.Optional, "calls[0].optional", "a call that may fail opens no session", remove, nil},
		{len(call.Else) > 0, "calls[0].else", "a session is with one service", remove, nil},
	})
}
