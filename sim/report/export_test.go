package report

// What tests look at besides the page.
var (
	Number    = number
	Percent   = percent
	Seconds   = seconds
	Quantity  = quantity
	SizeLimit = sizeLimit
)
