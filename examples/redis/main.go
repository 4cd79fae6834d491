// Command redis is to come.
package main

func main() {}
