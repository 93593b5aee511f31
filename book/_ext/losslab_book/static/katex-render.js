// Sets formulas for the book's build: one request a line on stdin, one answer a line on stdout; ends when stdin does.
const katex = require(process.argv[2]);
require("readline")
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { latex, options } = JSON.parse(line);
    let answer;
    try {
      answer = { html: katex.renderToString(latex, options) };
    } catch (error) {
      answer = { error: error.message };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  });
