// Package abatepgx is to come.
package abatepgx
