package lint

// Options says what to complain about.
type Options struct {
	// MaxAmplification is how many attempts one request may become; more is an error. 0 means 10.
	MaxAmplification float64
	// Least leaves out of Amplification what comes to fewer attempts in the worst case. 0 means 1: nothing is left out.
	Least float64
	// Work is how much Amplification follows exactly, in steps of calls (about 100 ns each), before it bounds the rest
	// coarsely; see Bound.Coarse. 0 means 8,000,000, which is enough for most systems of 10,000 services.
	Work int
	// Steps, if it is not nil, is added the steps that Run or Amplification makes.
	Steps *int
	// Only names the rules that Run asks, by their ids; none means all.
	Only []string
}

// WithDefaults returns the options with what is left out.
func (o Options) WithDefaults() Options {
	if o.MaxAmplification <= 0 {
		o.MaxAmplification = 10
	}
	o.Least = max(o.Least, 1)
	if o.Work <= 0 {
		o.Work = 8_000_000
	}
	return o
}
