package abatehttp

// Remembered is how many signs of failed calls t keeps.
func Remembered(t *Transport) int { return t.failed.Len() }
