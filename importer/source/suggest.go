package source

import (
	"strings"

	"github.com/abate-go/abate/internal/nearest"
)

// Meant says which of the words known somebody probably meant who wrote another, or lists them where none is near.
func Meant(word string, known []string) string {
	if near := nearest.To(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "it knows: " + strings.Join(known, ", ")
}
