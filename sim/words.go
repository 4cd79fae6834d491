package sim

import (
	"math"
	"strconv"

	"github.com/abate-go/abate/sim/figures"
)

// number writes a number for people: 10,000 or 65.2.
func number(v float64) string {
	if math.Abs(v) < 100 {
		return figures.Decimals(v, 2)
	}
	return figures.Thousands(math.Round(v))
}

// short writes a factor with three digits at most.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
