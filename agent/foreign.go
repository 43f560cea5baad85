package agent

// Fence returns a text from outside between two lines with the same random word, so that a model can see where it
// begins and ends. The text cannot contain such a line. source names where the text comes from.
func Fence(source, text string) string { return fence(source, text) }
