// A program that asks a model once, by plain fetch: its question on standard input, its answer on standard output.
const question = (await process.stdin.toArray()).join("").trim();
const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
  method: "POST",
  headers: { "content-type": "application/json", authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
  body: JSON.stringify({ model: "any-model", messages: [{ role: "user", content: question }] }),
});
if (!response.ok) {
  console.error(`HTTP ${response.status}`);
  process.exit(1);
}
console.log((await response.json()).choices[0].message.content);
