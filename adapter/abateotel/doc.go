// Package abateotel is to come.
package abateotel
