package inspect

import "fmt"

// keepBaseline leaves the baseline as it is if something went wrong: one of the rest would have lost what was accepted
// of a path that could not be read.
func (o *auditOptions) keepBaseline(err error) error {
	if err == nil || !o.writeBaseline {
		return err
	}
	o.writeBaseline = false
	return fmt.Errorf("%w\n%s was not written", err, o.baseline)
}
