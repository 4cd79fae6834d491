package kafkadrill

// Missed lets tests ask what an act should have done and did not.
func Missed(c Config, a ActResult) []string {
	r := Result{Acts: []ActResult{a}}
	r.judge(c)
	return r.Missed
}
