// Package coded reads what stands in a text in another form: Base64, hexadecimal, escapes, Morse, Braille and others that are made
// to be read by machines and not by people.
//
// It promises that what it finds is readable text, that no more of it is read than a bound, and that any text takes a time which
// grows with its length alone. What the text says is for others to judge.
package coded
