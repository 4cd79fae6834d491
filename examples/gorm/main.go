// Command gorm is to come.
package main

func main() {}
