// Package traefik reads dynamic configurations of Traefik: files, the resources of its operator, and the labels of
// containers in a compose file. A retry middleware acts where a router names it, and nowhere else.
package traefik
