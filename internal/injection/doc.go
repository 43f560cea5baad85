// Package injection reads one text as a model would, and finds the orders to a model in it.
//
// It promises one canonical form of a text, in which nothing is hidden; and that words are found in any dress:
// alphabets that look alike, codes, pieces, ninety languages. What is done about them, and where a text stands in a
// definition, is for package shield to say.
package injection
