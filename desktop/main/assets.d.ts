/** The path of a file that electron-vite copies into the app. */
declare module '*?asset' {
  const path: string;
  export default path;
}
