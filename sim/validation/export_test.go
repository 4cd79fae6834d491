package validation

import "context"

// RunSome is Run for the experiments whose first claim has an ID that chosen accepts, in models that change changes.
func RunSome(ctx context.Context, chosen func(id string) bool, change func(model string) string) ([]Row, error) {
	var some []experiment
	for _, x := range experiments() {
		if chosen(x.claims[0].id) {
			x.model = change(x.model)
			some = append(some, x)
		}
	}
	return run(ctx, some, nil)
}

// Judge is the row of a claim with these settings.
func Judge(published float64, how Comparison, within, deviation, alike float64, trials int, values []float64) Row {
	return judge("source", &claim{
		id: "id", what: "what", published: published, how: how, within: within, deviation: deviation, alike: alike,
		trials: trials,
	}, values)
}
