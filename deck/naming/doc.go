// Package naming says what the cards, prompts and URIs of mounted servers are called outward, and which server a name or a
// URI leads back to.
//
// It promises that a name is legal wherever it goes, that it depends on its server and its tool and on nothing else, and
// that no two of them share one by accident. It reads the URI templates of servers at a cost that no server decides.
package naming
