package lint

// Options says what to complain about.
type Options struct {
	// MaxAmplification is how many attempts one request may become; more is an error. 0 means 10.
	MaxAmplification float64
	// Least leaves out of Amplification what comes to fewer attempts in the worst case. 0 means 1: nothing is left out.
	Least float64
	// Only names the rules that Run asks, by their ids; none means all.
	Only []string
}

// WithDefaults returns the options with what is left out.
func (o Options) WithDefaults() Options {
	if o.MaxAmplification <= 0 {
		o.MaxAmplification = 10
	}
	o.Least = max(o.Least, 1)
	return o
}
