// What is in a picture. A page of its own decodes it, so that no library is needed.

export class Pixels {
  static async open(browser) {
    const pixels = new Pixels();
    pixels.tab = await browser.newPage();
    return pixels;
  }

  /// How many colours a PNG has, all but the rarest, and the part of it that has the most frequent one.
  async count(png) {
    return this.tab.evaluate(async (data) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      const { data: bytes } = context.getImageData(0, 0, image.width, image.height);
      const seen = new Map();
      for (let at = 0; at < bytes.length; at += 4) {
        const colour = (bytes[at] >> 3 << 10) | (bytes[at + 1] >> 3 << 5) | (bytes[at + 2] >> 3);
        seen.set(colour, (seen.get(colour) ?? 0) + 1);
      }
      const counts = [...seen.values()];
      return { colours: counts.filter((count) => count >= 4).length, largest: Math.max(...counts) / (bytes.length / 4) };
    }, png.toString("base64"));
  }
}
