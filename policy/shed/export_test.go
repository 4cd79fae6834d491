package shed

// SkipArrivals moves the counter of arrivals on by n, as if so many had come in other times.
func (s *Shedder) SkipArrivals(n uint64) { s.word.Add(n << arrivalShift) }

// WrapArrivals is after how many the counter wraps.
const WrapArrivals = 1 << arrivalBits
