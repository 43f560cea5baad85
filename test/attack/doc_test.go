// Package attack has only tests: those in which somebody means harm. A gateway stands between hostile servers and
// honest ones, and between honest clients and hostile ones, and each test says in its name what is tried and in its
// table what comes of it.
//
// The names begin with those of the matrices that the tests are made from: HS for hostile servers, HC for hostile
// clients, JS for messages that two readers read differently, HD for what a web page may send, AU and AZ for who is
// let in and to what, IS for what one caller must not have of another, DO for what is too much, PT for paths, UC for
// what a terminal is shown, EX, SC and TR for what is started, kept and approved. docs/security.md says which promise
// each one holds.
package attack
