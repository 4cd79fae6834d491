package sim

import "fmt"

// answer says in a sentence what was found.
func (a *advisor) answer() {
	f := &a.found
	tried := "tried " + plural(f.Tried, "change")
	if f.Pairs > 0 {
		tried += " and " + plural(f.Pairs, "pair")
	}
	tried += " in " + plural(f.Runs, "run")
	stopped := a.st.ctx.Err() != nil
	switch {
	case len(a.advice) > 0:
		f.Closest = nil
		hold := "holds"
		if len(a.advice) > 1 {
			hold = "hold"
		}
		f.Text = fmt.Sprintf("%s; on fresh seeds %d %s", tried, len(a.advice), hold)
	case stopped && f.Closest == nil:
		f.Text = tried + "; stopped before there was an answer"
	case f.Closest == nil:
		f.Text = tried + "; there is nothing to change here"
	default:
		f.Text = tried + "; none holds"
		if stopped {
			f.Text += " so far"
		}
		f.Text += "; the closest is " + f.Closest.Change + ", but " + f.Closest.Why
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return number(float64(n)) + " " + what + "s"
}
